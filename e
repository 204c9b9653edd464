stagecraft: /nonex/x: cannot be written: No such file or directory
