"""The decision rule on plain numbers: screen, confirm, certify. Knows neither agents nor records."""
