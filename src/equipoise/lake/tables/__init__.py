"""What tables a lake has, and what is known of them."""
