"""What `bin/up` and `bin/test` share: from a bare Debian to a running engine. No part of the product."""
