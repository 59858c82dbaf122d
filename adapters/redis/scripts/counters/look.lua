return { standing() }
