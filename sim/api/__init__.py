"""What `import sim` offers, and the command line calls: one function for each thing that a user does."""
