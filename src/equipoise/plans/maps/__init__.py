"""The policy map: a bias over two moves that add or delete rows."""
