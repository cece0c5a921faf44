"""The clinic: sound code of many styles, mistakes planted in it, the doctor.

Nothing here was chosen with the doctor in mind. Styles are written in the
manner of real code; operators plant mistakes wherever their pattern fits; an
oracle, which knows nothing of the doctor, says which of them are ill. Then
the doctor examines them, told what an author would tell, and told nothing.
"""
