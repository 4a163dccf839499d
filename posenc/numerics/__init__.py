"""Mathematics that schemes share; nothing here knows what a scheme is."""
