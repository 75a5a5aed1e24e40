#include "textflag.h"

// func squares4(n int, x *[4]float64, a, b, c, d, out *float64)
TEXT ·squares4(SB), NOSPLIT, $0-56
	MOVQ n+0(FP), CX
	MOVQ x+8(FP), AX
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DI
	MOVQ c+32(FP), R8
	MOVQ d+40(FP), R9
	MOVQ out+48(FP), DX

	VBROADCASTSD (AX), Y0
	VBROADCASTSD 8(AX), Y1
	VBROADCASTSD 16(AX), Y2
	VBROADCASTSD 24(AX), Y3
	XORQ         BX, BX

loop:
	VSUBPD  (SI)(BX*8), Y0, Y4
	VSUBPD  (DI)(BX*8), Y1, Y5
	VSUBPD  (R8)(BX*8), Y2, Y6
	VSUBPD  (R9)(BX*8), Y3, Y7
	VMULPD  Y4, Y4, Y4
	VMULPD  Y5, Y5, Y5
	VMULPD  Y6, Y6, Y6
	VMULPD  Y7, Y7, Y7
	VADDPD  Y5, Y4, Y4
	VADDPD  Y7, Y6, Y6
	VADDPD  Y6, Y4, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func squares2(n int, x, y float64, a, b, out *float64)
TEXT ·squares2(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ a+24(FP), SI
	MOVQ b+32(FP), DI
	MOVQ out+40(FP), DX

	VBROADCASTSD x+8(FP), Y0
	VBROADCASTSD y+16(FP), Y1
	XORQ         BX, BX

loop:
	VSUBPD  (SI)(BX*8), Y0, Y4
	VSUBPD  (DI)(BX*8), Y1, Y5
	VMULPD  Y4, Y4, Y4
	VMULPD  Y5, Y5, Y5
	VADDPD  Y5, Y4, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func products2(n int, x, y float64, a, b, out *float64)
TEXT ·products2(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ a+24(FP), SI
	MOVQ b+32(FP), DI
	MOVQ out+40(FP), DX

	VBROADCASTSD x+8(FP), Y0
	VBROADCASTSD y+16(FP), Y1
	XORQ         BX, BX

loop:
	VMULPD  (SI)(BX*8), Y0, Y4
	VMULPD  (DI)(BX*8), Y1, Y5
	VADDPD  Y5, Y4, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func quadratic(n int, weight float64, t, out *float64)
TEXT ·quadratic(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ t+16(FP), SI
	MOVQ out+24(FP), DX

	VBROADCASTSD weight+8(FP), Y0
	MOVQ         $0x4000000000000000, AX // 2
	MOVQ         AX, X1
	VMOVDDUP     X1, X1
	VINSERTF128  $1, X1, Y1, Y1
	XORQ         BX, BX

loop:
	VMOVUPD (SI)(BX*8), Y4
	VADDPD  Y1, Y4, Y5
	VMULPD  Y5, Y4, Y4
	VMULPD  Y4, Y0, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func scale(n int, x float64, out *float64)
TEXT ·scale(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ out+16(FP), DX

	VBROADCASTSD x+8(FP), Y0
	XORQ         BX, BX

loop:
	VMULPD  (DX)(BX*8), Y0, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func pairSums(n int, pairs, a, b, c, d *float64, sums *[8]float64)
TEXT ·pairSums(SB), NOSPLIT, $0-56
	MOVQ n+0(FP), CX
	MOVQ pairs+8(FP), AX
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DI
	MOVQ c+32(FP), R8
	MOVQ d+40(FP), R9
	MOVQ sums+48(FP), DX

	VXORPD X0, X0, X0
	VXORPD X1, X1, X1
	VXORPD X2, X2, X2
	VXORPD X3, X3, X3
	XORQ   BX, BX

loop:
	VMOVUPD  (AX), X4
	VMOVDDUP (SI)(BX*8), X5
	VMOVDDUP (DI)(BX*8), X6
	VMOVDDUP (R8)(BX*8), X7
	VMOVDDUP (R9)(BX*8), X8
	VMULPD   X4, X5, X5
	VMULPD   X4, X6, X6
	VMULPD   X4, X7, X7
	VMULPD   X4, X8, X8
	VADDPD   X5, X0, X0
	VADDPD   X6, X1, X1
	VADDPD   X7, X2, X2
	VADDPD   X8, X3, X3
	ADDQ     $16, AX
	INCQ     BX
	CMPQ     BX, CX
	JLT      loop

	VMOVUPD X0, (DX)
	VMOVUPD X1, 16(DX)
	VMOVUPD X2, 32(DX)
	VMOVUPD X3, 48(DX)
	RET
