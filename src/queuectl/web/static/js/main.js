// Starts what a page needs.
