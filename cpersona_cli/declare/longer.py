"""What a manual page says beyond the help of its command, by the command's name: sections of a title and paragraphs.

Only the manual reads this.
"""

SECTIONS = {
    "import": (
        (
            "What a file may be",
            """
            A file is recognised by its content, whatever it is called and also from a pipe: lines of JSON that
            `cpersona export` wrote, or that the reference implementation exported (cpersona-export/1.0, 1.1 and 1.2),
            and the reference's own SQLite database (schema 21; up to 24 by the columns that are there). The
            reference's database is only read. Where nobody has it open it is read in place, else a private copy,
            which SQLite makes consistent; nothing in it changes, and nothing appears beside it. One of a later schema,
            of another program or damaged is said in one line, and nothing is imported.

            A file whose first line is no record ends with one message: what it seems to be, and which command takes
            it.
            """,
        ),
        (
            "What becomes of the reference's fields",
            """
            Memories and episodes: every field as it stands. content is cleaned as a store cleans it, and cut at
            CPERSONA_MAX_CONTENT_LENGTH, which is said. source and metadata may have any length; text of them that is
            no JSON is kept letter by letter, and written again as source_text and metadata_text. timestamp,
            start_time and end_time are the very text. recall_count, last_recalled_at, locked and resolved are
            restored.

            Ids: rows are numbered anew, and everything that names one follows: mentions, both ends of a relation, and
            its anchor.

            Vectors: as they stand, each with its embedding_model. Those that the embedder at work cannot compare, by
            their model or their width, are counted at the end and made anew in the background; --keep-vectors leaves
            them as they are, and such rows are found by words alone.

            Profiles: the one with an empty user_id is the agent's. Those of other users are kept beside it and
            exported again; the first of them by name stands in where an agent has none of its own. An older profile
            never replaces a newer one.

            Entities, aliases, mentions and relations: as they stand; created_at and declared_at keep microseconds and
            offset. declared_by is kept, whoever it names.

            Left out and counted: folders and folder_members (there are no folders here), pending_memory_tasks (work
            that the reference had yet to do), and tables and columns that are not known. record_blocks and
            record_nodes are made of the rows, and made anew here. None of this is a failure: the exit status stays 0.
            """,
        ),
        (
            "And back",
            """
            `cpersona export FILE --all-agents --embeddings --for reference` writes a file that the reference's
            import_memories takes whole. It accepts associations that agent or operator declared: what the owner of
            this store declared goes out as the operator's, what any other client declared as the agent's, and
            declared_as beside it holds the name. The reference passes over that field and has no column for it, so
            that the name comes back from the file itself, and not from a file that the reference wrote after it.
            Metadata that is no object goes out as metadata_text. Vectors go out as they are by then: with an embedder
            of another model those of an import come back as they came only after --keep-vectors.
            """,
        ),
    )
}
