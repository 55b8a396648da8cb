"""What a browser may ask for, a module for each topic."""
