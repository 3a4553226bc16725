VALUE = "layer"
