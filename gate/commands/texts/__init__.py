"""What the commands without a verdict print, as text; nothing here prints it."""
