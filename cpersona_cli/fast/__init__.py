"""What makes a command quick: the plain command line parsed without Typer, and a codec for small frames."""
