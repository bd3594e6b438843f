"""Code that runs in the user's interpreter: standard library only, without imports from the gate."""
