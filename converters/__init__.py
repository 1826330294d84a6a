"""The conversion side: importers, passes, quantization, lowering, emitters, verification. Needs edgekit[convert]."""
