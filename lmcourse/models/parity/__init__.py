"""Compare a decoder made of somebody's functions with the course's: its parts, suspects, and the first difference."""
