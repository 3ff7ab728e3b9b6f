"""Forms of an audit."""
