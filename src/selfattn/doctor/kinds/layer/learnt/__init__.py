"""What a layer has learnt besides its maps, by names and by shapes.

Each function tells the steps that this may stand for, each way one choice.
What is learnt is used; where nothing is, the one choice is to do nothing.
"""
