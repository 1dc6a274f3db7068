"""`cpersona mcp`: the memory as tools of the Model Context Protocol, a thin bridge over the client's wire."""
