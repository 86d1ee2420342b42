"""The processes that call actions in a loop: workers, and the supervisor that keeps them."""
