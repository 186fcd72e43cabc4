"""The ground floor: errors in one line, foreign text made safe, files written whole, checked JSON, the device."""
