module tether

go 1.26
