"""The English stop words: the one list of words that neither vote nor cost time in a query.

Contract: lexical.terms.
"""

ENGLISH = frozenset(
    """
    a about above after again against all also am an and any are as at b be because been before being below between
    both but by can could d did do does doing down during e each else ever few for from further g get gets getting got
    had has have having he her here hers herself him himself his how i if in into is it its itself just ll m me more
    most much must my myself no nor not now o of off on once one only onto or other our ours ourselves out over own p
    please re s same shall she should so some such t than that the their theirs them themselves then there these they
    this those through thus to too under until up upon us ve very was we were what whatever when where whether which
    while who whom whose why will with would yes yet you your yours yourself yourselves i'm you're he's she's it's
    we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll it'll we'll
    they'll isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't shan't shouldn't
    can't cannot couldn't mustn't let's that's who's what's here's there's when's where's why's how's
    """.split()
)
