"""Which agents, projects and channels there are, told within the same grants as their rows.

Contract: scope.axes, access.denial.
"""

from contract_kit import episode, memory


def test_an_agents_projects_and_channels_are_those_of_its_rows(reader):
    assert reader.own("list_axes") == {"projects": [], "channels": []}
    reader.load(
        memory("one", project_id="p", channel="c"), memory("two", channel="a"), episode("three", project_id="q")
    )
    assert reader.own("list_axes") == {"projects": ["p", "q"], "channels": ["a", "c"]}


def test_without_an_agent_the_agents_are_told(reader):
    reader.load(memory("one"))
    reader.ask("archive_episode", agent_id=reader.name + "-episodes", summary="x")
    assert {reader.name, reader.name + "-episodes"} <= set(reader.ask("list_axes")["agents"])
