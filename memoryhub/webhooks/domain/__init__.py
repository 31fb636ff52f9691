"""What is told, and how it is signed. Pure."""
