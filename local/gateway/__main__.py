import sys

from local.gateway.cli import main

sys.exit(main())
