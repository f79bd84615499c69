"""What every end-to-end test shares: a server to start, a bare RESP connection, tenants, places on disk."""
