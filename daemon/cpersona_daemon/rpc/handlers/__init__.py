"""One file for each family of methods: decode what was asked, ask the library, shape the answer."""
