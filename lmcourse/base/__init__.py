"""What every other package may use: errors in one line, text, units, files written whole, the device."""
