"""What the doctor says of mistakes it knows, and of code by others."""
