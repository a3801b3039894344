"""What `bin/up` and `bin/test` share: from a bare Debian to a running engine. Nothing here is imported by the product."""
