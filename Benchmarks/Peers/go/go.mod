module weft.peers/goroutines

go 1.23
