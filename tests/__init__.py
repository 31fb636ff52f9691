"""The tests mirror memoryhub/; browser/ drives Chromium, bench/ measures."""
