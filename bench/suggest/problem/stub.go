package problem

type Task struct{}
