format = 1
made = "yesterday"
