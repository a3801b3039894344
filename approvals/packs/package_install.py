"""Packages by name and exact version from the registry that the image is set to, or what a lock file says. What a
package runs at its installation it runs in the sandbox; npm's scripts stay off. No address, no file, no other index by
words; by a file of settings neither, since `approvals.rules.trust` asks once anything was written that no person saw.
"""

TITLE = "Package install"
ABOUT = "pip and npm with exact versions, npm without scripts. Needs a network; asks after writes that nobody saw."
VERSION = 2
RULES = (
    ("pip install *==* <rest:*==*>", ("pip install polars==1.12.0", "pip install a==1 b==2.0"),
     ("pip install", "pip install polars", "pip install .", "pip install -r requirements.txt",
      "pip install ./x-1.0.whl",
      "pip install git+https://x/y", "pip install --index-url http://x polars==1.12.0", "pip install -e .",
      "pip install https://x/y.whl", "pip uninstall polars", "python -m pip install polars==1.12.0")),
    ("npm ci --ignore-scripts <nothing>", ("npm ci --ignore-scripts",),
     ("npm ci", "npm ci --ignore-scripts --registry=http://x", "npm run build", "npx jest")),
    ("npm install --ignore-scripts *@* <rest:*@*>", ("npm install --ignore-scripts left-pad@1.3.0",),
     ("npm install --ignore-scripts", "npm install left-pad@1.3.0", "npm install --ignore-scripts left-pad",
      "npm install --ignore-scripts ../x",
      "npm install --ignore-scripts http://x/y.tgz")),
)  # fmt: skip
