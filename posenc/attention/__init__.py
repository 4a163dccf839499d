"""The one attention: encode the tokens, mix them by a kernel, finish what was mixed."""
