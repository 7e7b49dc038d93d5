def encode_limbs(v): raise NotImplementedError
def decode_limbs(v): raise NotImplementedError
