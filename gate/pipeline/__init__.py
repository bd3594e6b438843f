"""The flow: config → suite → execute → score → record → decide → report."""
