#include "textflag.h"

// func hasAVX() bool
TEXT ·hasAVX(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18000000, CX // AVX, and XGETBV allowed
	CMPL CX, $0x18000000
	JNE  done
	XORL CX, CX
	XGETBV
	ANDL $6, AX // the system saves both halves of the registers
	CMPL AX, $6
	JNE  done
	MOVB $1, ret+0(FP)

done:
	RET

// One step of a row: C0:C1 += A*(Y8:Y9).
#define ROW(A, C0, C1) \
	VBROADCASTSD A, Y10     \
	VMULPD       Y8, Y10, Y11 \
	VMULPD       Y9, Y10, Y12 \
	VADDPD       Y11, C0, C0 \
	VADDPD       Y12, C1, C1

// func multiply4(k int, a *float64, rowStep, columnStep int, b, c *float64, step int)
TEXT ·multiply4(SB), NOSPLIT, $0-56
	MOVQ k+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ rowStep+16(FP), R8
	MOVQ columnStep+24(FP), R9
	MOVQ b+32(FP), DI
	MOVQ c+40(FP), DX
	MOVQ step+48(FP), R10

	LEAQ (SI)(R8*1), R11
	LEAQ (SI)(R8*2), R12
	LEAQ (R11)(R8*2), R13
	LEAQ (DX)(R10*1), AX
	LEAQ (DX)(R10*2), R8
	LEAQ (AX)(R10*2), R10

	VMOVUPD (DX), Y0
	VMOVUPD 32(DX), Y1
	VMOVUPD (AX), Y2
	VMOVUPD 32(AX), Y3
	VMOVUPD (R8), Y4
	VMOVUPD 32(R8), Y5
	VMOVUPD (R10), Y6
	VMOVUPD 32(R10), Y7
	XORQ    BX, BX

loop4:
	VMOVUPD (DI), Y8
	VMOVUPD 32(DI), Y9
	ROW((SI)(BX*1), Y0, Y1)
	ROW((R11)(BX*1), Y2, Y3)
	ROW((R12)(BX*1), Y4, Y5)
	ROW((R13)(BX*1), Y6, Y7)
	ADDQ    R9, BX
	ADDQ    $64, DI
	DECQ    CX
	JNZ     loop4

	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, (AX)
	VMOVUPD Y3, 32(AX)
	VMOVUPD Y4, (R8)
	VMOVUPD Y5, 32(R8)
	VMOVUPD Y6, (R10)
	VMOVUPD Y7, 32(R10)
	VZEROUPPER
	RET

// func multiply1(k int, a *float64, columnStep int, b, c *float64)
TEXT ·multiply1(SB), NOSPLIT, $0-40
	MOVQ k+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ columnStep+16(FP), R9
	MOVQ b+24(FP), DI
	MOVQ c+32(FP), DX

	VMOVUPD (DX), Y0
	VMOVUPD 32(DX), Y1

loop1:
	VMOVUPD (DI), Y8
	VMOVUPD 32(DI), Y9
	ROW((SI), Y0, Y1)
	ADDQ    R9, SI
	ADDQ    $64, DI
	DECQ    CX
	JNZ     loop1

	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VZEROUPPER
	RET
