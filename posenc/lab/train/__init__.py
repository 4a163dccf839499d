"""Training as pure functions, and the devices that it runs on."""
