"""What a person types: one file for each word. A name with an underscore before it is shared by several words."""
