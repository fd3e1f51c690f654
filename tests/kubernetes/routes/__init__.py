"""The chart behind a real Traefik, by Ingress and by Gateway API: what users do goes through its controller."""
