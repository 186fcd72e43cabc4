"""The chapter on the whole transformer: from tokens to a loss, who reads whom, what it starts with, which shapes."""
