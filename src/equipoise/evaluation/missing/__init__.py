"""Methods of treating missing values: how each changes Uniform Bias, on real and removed values."""
