"""How a command is declared, and what is made of the declarations: the Typer tree, manual pages, completions."""
