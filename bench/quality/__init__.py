"""How good schedules are: waits under our orders beside those under plain policies, on the same seeded arrivals."""
