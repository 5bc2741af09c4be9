"""What runs plugins: profiles, extension points, stored answers, dry runs."""
