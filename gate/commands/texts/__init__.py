"""The output of commands without a verdict, as text; nothing here prints it."""
