"""What a repair does to models: trained and tested before and after, again and again."""
