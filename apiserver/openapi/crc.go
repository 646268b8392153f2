package openapi

import "hash/crc32"

// A CRC is the remainder of a polynomial over GF(2), divided by another one. So that of two texts after one another is
// that of the first, times x to the number of bits of the second, plus that of the second; all of it modulo the divisor.
// Here as in hash/crc32 the highest coefficient is the lowest bit.

const crcOne = 1 << 31 // the polynomial 1

// combineCRC is the sum of a text whose first part has the sum a, and whose second part, of size bytes, the sum b.
func combineCRC(a, b uint32, size int) uint32 {
	return multiplyCRC(a, powerOfX(8*uint64(size))) ^ b
}

// multiplyCRC is a times b.
func multiplyCRC(a, b uint32) (product uint32) {
	for bit := uint32(crcOne); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		b = timesX(b)
	}
	return product
}

func timesX(a uint32) uint32 {
	if a&1 != 0 {
		return a>>1 ^ crc32.IEEE
	}
	return a >> 1
}

// powerOfX is x to the n, by squaring.
func powerOfX(n uint64) uint32 {
	result, square := uint32(crcOne), timesX(crcOne)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = multiplyCRC(result, square)
		}
		square = multiplyCRC(square, square)
	}
	return result
}
