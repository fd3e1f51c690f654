"""What a job may rely on, whatever its engine: each promise once, kept on both through the whole product.

A test has a document, which is submitted to a real backend, and looks at what its task wrote, at the REST interface,
at SSH and at services, as a user would. ``room`` is the backend with one of the engines. Where they differ is in
``docs/engines.md``, and nowhere else.

The jobs of a module are submitted together (``documents.submitted``) and run side by side; each test waits for its own.
"""
